# Made by tools/vendor_stubs.py from rknn-toolkit2==2.5.0; do not edit.
import collections.abc
import typing
from typing import Any, ClassVar, overload

class RKNN:
    NPU_CORE_AUTO: int
    NPU_CORE_0: int
    NPU_CORE_1: int
    NPU_CORE_2: int
    NPU_CORE_0_1: int
    NPU_CORE_0_1_2: int
    NPU_CORE_ALL: int
    verbose: Any
    rknn_log: Any
    rknn_base: Any

    def __init__(self, verbose: bool = False, verbose_file: Any = None) -> None: ...
    def config(
        self,
        mean_values: Any = None,
        std_values: Any = None,
        quantized_dtype: str = "w8a8",
        quantized_algorithm: str = "normal",
        quantized_method: str = "channel",
        quantized_hybrid_level: int = 0,
        target_platform: Any = None,
        quant_img_RGB2BGR: bool = False,
        float_dtype: str = "float16",
        optimization_level: int = 3,
        custom_string: Any = None,
        remove_weight: bool = False,
        compress_weight: bool = False,
        inputs_yuv_fmt: Any = None,
        single_core_mode: bool = False,
        dynamic_input: Any = None,
        model_pruning: bool = False,
        op_target: Any = None,
        quantize_weight: bool = False,
        remove_reshape: bool = False,
        sparse_infer: bool = False,
        mini_rknn: bool = False,
        enable_flash_attention: bool = False,
        auto_hybrid_cos_thresh: float = 0.98,
        auto_hybrid_euc_thresh: Any = None,
        memory_plan_strategy: str = "BestFit",
        compute_order: str = "WidthFirst",
        compiler_control_file: Any = None,
    ) -> Any: ...
    def load_tensorflow(
        self,
        tf_pb: Any,
        inputs: Any,
        input_size_list: Any,
        outputs: Any,
        input_is_nchw: bool = False,
    ) -> Any: ...
    def load_caffe(self, model: Any, blobs: Any = None, input_name: Any = None) -> Any: ...
    def load_tflite(self, model: Any, input_is_nchw: bool = False) -> Any: ...
    def load_onnx(
        self,
        model: Any,
        inputs: Any = None,
        input_size_list: Any = None,
        input_initial_val: Any = None,
        outputs: Any = None,
    ) -> Any: ...
    def load_darknet(self, model: Any, weight: Any) -> Any: ...
    def load_pytorch(self, model: Any, input_size_list: Any) -> Any: ...
    def build(
        self,
        do_quantization: bool = True,
        dataset: Any = None,
        rknn_batch_size: Any = None,
        auto_hybrid: bool = False,
    ) -> Any: ...
    def hybrid_quantization_step1(
        self,
        dataset: str = "dataset.txt",
        rknn_batch_size: Any = None,
        proposal: bool = False,
        proposal_dataset_size: int = 1,
        custom_hybrid: Any = None,
    ) -> Any: ...
    def hybrid_quantization_step2(
        self, model_input: Any, data_input: Any, model_quantization_cfg: Any
    ) -> Any: ...
    def export_rknn(self, export_path: Any) -> Any: ...
    def load_rknn(self, path: Any) -> Any: ...
    def accuracy_analysis(
        self, inputs: Any, output_dir: str = "./snapshot", target: Any = None, device_id: Any = None
    ) -> Any: ...
    def init_runtime(
        self,
        target: Any = None,
        device_id: Any = None,
        perf_debug: bool = False,
        eval_mem: bool = False,
        async_mode: bool = False,
        core_mask: Any = ...,
        fallback_prior_device: str = "cpu",
    ) -> Any: ...
    def inference(
        self,
        inputs: Any,
        data_format: Any = None,
        inputs_pass_through: Any = None,
        get_frame_id: bool = False,
    ) -> Any: ...
    def eval_perf(self, is_print: bool = True, fix_freq: bool = True) -> Any: ...
    def eval_memory(self, is_print: bool = True) -> Any: ...
    def list_devices(self) -> Any: ...
    def get_sdk_version(self) -> Any: ...
    def reg_custom_op(self, custom_op: Any) -> Any: ...
    def optimize_onnx(
        self,
        model: Any,
        optimized_path: Any = None,
        passes_enable: Any = None,
        inputs_for_dump: Any = None,
    ) -> Any: ...
    def codegen(self, output_path: Any, inputs: Any = None, overwrite: bool = False) -> Any: ...
    def clear_op_cache(self) -> None: ...
    def release(self) -> None: ...
