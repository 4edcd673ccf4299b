"""The operators that a ``torch.export`` program of a stranger may call: all compute with tensors.

PyTorch finds an operator by walking along its name, so that without a list a file may name anything
below ``torch``, such as ``torch.os.system``. And not all of ATen is harmless: ``from_file`` makes
files, ``save`` writes them, and packed weights of ``fbgemm`` are addresses.

Source:
    ATen/native/native_functions.yaml of PyTorch 2.13, without operators for training, for files and
    devices, and for tensors that are sparse, packed or quantized by PyTorch's old scheme.
"""

from __future__ import annotations

import re

_ATEN = """
__and__ __lshift__ __or__ __rshift__ __xor__
_adaptive_avg_pool2d _adaptive_avg_pool3d _assert_async _assert_scalar _assert_tensor_metadata
_cdist_forward _conj _convolution _fft_c2c _fft_c2r _fft_r2c _functional_assert_async
_local_scalar_dense _log_softmax _native_batch_norm_legit _native_batch_norm_legit_functional
_native_batch_norm_legit_no_training _pdist_forward _safe_softmax
_scaled_dot_product_flash_attention_for_cpu _softmax _to_copy _unique2 _unsafe_index _unsafe_view
_upsample_bicubic2d_aa _upsample_bilinear2d_aa _upsample_nearest_exact1d _upsample_nearest_exact2d
_upsample_nearest_exact3d _weight_norm abs absolute acos acosh adaptive_avg_pool1d
adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d
adaptive_max_pool3d add addbmm addcdiv addcmul addmm addmv addr adjoint affine_grid_generator
alias alias_copy all alpha_dropout amax amin aminmax angle any arange arccos arccosh arcsin
arcsinh arctan arctan2 arctanh argmax argmin argsort argwhere as_strided as_strided_copy asin
asinh atan atan2 atanh atleast_1d atleast_2d atleast_3d avg_pool1d avg_pool2d avg_pool3d baddbmm
bartlett_window batch_norm bernoulli bilinear bincount bitwise_and bitwise_left_shift bitwise_not
bitwise_or bitwise_right_shift bitwise_xor blackman_window bmm broadcast_tensors broadcast_to
bucketize cat cdist ceil celu channel_shuffle cholesky cholesky_inverse cholesky_solve chunk clamp
clamp_max clamp_min clip clone col2im complex concat concatenate conj conj_physical
constant_pad_nd contiguous conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d
convolution copy copysign cos cosh cosine_similarity count_nonzero cross cummax cummin cumprod
cumsum deg2rad det detach detach_copy diag diag_embed diagflat diagonal diagonal_copy
diagonal_scatter diff digamma dim div divide dot dropout dsplit dstack einsum elu embedding
embedding_bag empty empty_like empty_strided eq erf erfc erfinv exp exp2 expand expand_as
expand_copy expm1 eye feature_alpha_dropout feature_dropout fft_fft fft_fft2 fft_fftfreq fft_fftn
fft_fftshift fft_hfft fft_hfft2 fft_hfftn fft_ifft fft_ifft2 fft_ifftn fft_ifftshift fft_ihfft
fft_ihfft2 fft_ihfftn fft_irfft fft_irfft2 fft_irfftn fft_rfft fft_rfft2 fft_rfftfreq fft_rfftn
fill fill_diagonal fix flatten flip fliplr flipud float_power floor floor_divide fmax fmin fmod
frac frexp full full_like gather gcd ge gelu ger glu greater greater_equal grid_sampler
grid_sampler_2d grid_sampler_3d group_norm gru gru_cell gt hamming_window hann_window hardshrink
hardsigmoid hardswish hardtanh heaviside histc hsplit hstack hypot i0 igamma igammac im2col imag
index index_add index_copy index_fill index_put index_reduce index_select indices inner
instance_norm inverse isclose isfinite isin isinf isnan isneginf isposinf isreal istft item
kaiser_window kl_div kron kthvalue layer_norm lcm ldexp le leaky_relu lerp less less_equal lgamma
lift_fresh lift_fresh_copy linalg_cholesky linalg_cond linalg_cross linalg_det linalg_diagonal
linalg_eig linalg_eigh linalg_eigvals linalg_eigvalsh linalg_inv linalg_lstsq linalg_lu
linalg_matmul linalg_matrix_exp linalg_matrix_norm linalg_matrix_power linalg_matrix_rank
linalg_multi_dot linalg_norm linalg_pinv linalg_qr linalg_solve linalg_solve_triangular linalg_svd
linalg_svdvals linalg_vecdot linalg_vector_norm linear linspace log log10 log1p log2 log_sigmoid
log_softmax logaddexp logaddexp2 logcumsumexp logdet logical_and logical_not logical_or
logical_xor logit logspace logsumexp lstm lstm_cell lt mH mT masked_fill masked_scatter
masked_select matmul matrix_exp matrix_power max max_pool1d max_pool1d_with_indices max_pool2d
max_pool2d_with_indices max_pool3d max_pool3d_with_indices max_unpool2d max_unpool3d maximum mean
median meshgrid min minimum mish mm mode moveaxis movedim msort mul multinomial multiply mv
nan_to_num nanmean nanmedian nanquantile nansum narrow narrow_copy native_batch_norm
native_channel_shuffle native_dropout native_group_norm native_layer_norm ne neg negative
new_empty new_empty_strided new_full new_ones new_zeros nextafter nll_loss_nd nonzero
nonzero_static norm normal not_equal numel one_hot ones ones_like outer pad pairwise_distance
permute permute_copy pinverse pixel_shuffle pixel_unshuffle polar positive pow prelu prod qr
quantile rad2deg rand rand_like randint randint_like randn randn_like randperm ravel real
reciprocal reflection_pad1d reflection_pad2d reflection_pad3d relu relu6 remainder repeat
repeat_interleave replication_pad1d replication_pad2d replication_pad3d reshape reshape_as
resolve_conj resolve_neg rms_norm rnn_relu rnn_tanh rnn_tanh_cell roll rot90 round rsqrt rsub
scalar_tensor scaled_dot_product_attention scatter scatter_add scatter_reduce searchsorted select
select_copy select_scatter selu sgn sigmoid sign signbit silu sin sinc sinh size slice slice_copy
slice_scatter softmax softplus softshrink sort special_digamma special_entr special_erf
special_erfc special_erfcx special_erfinv special_exp2 special_expit special_expm1 special_gammaln
special_i0 special_i0e special_i1 special_i1e special_log1p special_log_ndtr special_log_softmax
special_logit special_logsumexp special_ndtr special_ndtri special_round special_sinc
special_softmax special_xlog1py special_xlogy split split_copy split_with_sizes
split_with_sizes_copy sqrt square squeeze squeeze_copy stack std std_mean stft stride sub subtract
sum sum_to_size svd swapaxes swapdims sym_constrain_range sym_constrain_range_for_size sym_numel
sym_size sym_stride t t_copy take take_along_dim tan tanh tensor_split tensordot threshold tile to
topk trace transpose transpose_copy triangular_solve tril tril_indices triu triu_indices
true_divide trunc type_as unbind unbind_copy unflatten unfold unfold_copy uniform
unique_consecutive unsqueeze unsqueeze_copy upsample_bicubic2d upsample_bilinear2d
upsample_linear1d upsample_nearest1d upsample_nearest2d upsample_nearest3d var var_mean vdot view
view_as view_as_complex view_as_complex_copy view_as_real view_as_real_copy view_copy vsplit
vstack where xlogy zero zeros zeros_like
"""
_PRIMS = """
abs acos acosh add amax amin as_strided asin asinh atan atan2 atanh bitwise_and bitwise_not
bitwise_or bitwise_xor broadcast_in_dim cat ceil clone collapse collapse_view convert_element_type
cos cosh digamma div eq erf erfc exp exp2 expand_dims expm1 fft_c2c fft_c2r fft_r2c fill floor
fmax fmin fmod ge gt iota isfinite le lgamma log log10 log1p log2 lt maximum minimum mul ne neg
pow prod real reciprocal remainder reshape rev round rsqrt scalar_tensor sign signbit sin sinh
slice split_dim sqrt squeeze sub sum tan tanh transpose trunc var view_of where
"""
_QUANTIZED = """
choose_qparams choose_qparams_symmetric dequantize_per_channel dequantize_per_tensor
dequantize_per_token quantize_per_channel quantize_per_tensor quantize_per_token
"""
_HIGHER = "cond map_impl scan while_loop wrap_with_autocast wrap_with_set_grad_enabled"
_OPERATOR = """
add and_ eq floordiv ge getitem gt le lshift lt mod mul ne neg or_ pos pow rshift sub truediv
"""
_SYMBOLIC = "sym_float sym_int sym_ite sym_max sym_min sym_not sym_sqrt"
_KNOWN = frozenset(
    f"{place}.{name}"
    for place, names in (
        ("torch.ops.aten", _ATEN),
        ("torch.ops.prims", _PRIMS),
        ("torch.ops.quantized_decomposed", _QUANTIZED),
    )
    for name in names.split()
)
_WHOLE = frozenset(
    f"{place}.{name}"
    for place, names in (
        ("torch.ops.higher_order", _HIGHER),
        ("_operator", _OPERATOR),
        ("torch", _SYMBOLIC),
        ("math", "trunc"),
    )
    for name in names.split()
)
_OVERLOAD = re.compile(r"[A-Za-z]\w*", re.ASCII)


def is_known(target: str) -> bool:
    """Return whether a program may call an operator, or its variant that writes in place.

    Args:
        target: as in the file: ``torch.ops.aten.add_.Tensor``, ``_operator.mul``.
    """
    name, _, overload = target.rpartition(".")
    known = name in _KNOWN or (name.endswith("_") and name[:-1] in _KNOWN)
    return target in _WHOLE or (known and bool(_OVERLOAD.fullmatch(overload)))
