# Made by tools/vendor_stubs.py from rknn-toolkit-lite2==2.5.0; do not edit.
import collections.abc
import typing
from typing import Any, ClassVar, overload

class RKNNLite:
    NPU_CORE_AUTO: int
    NPU_CORE_0: int
    NPU_CORE_1: int
    NPU_CORE_2: int
    NPU_CORE_0_1: int
    NPU_CORE_0_1_2: int
    NPU_CORE_ALL: int
    target: str
    verbose: Any
    rknn_log: Any
    rknn_data: Any
    rknn_user_key: Any
    load_model_in_npu: bool
    rknn_runtime: Any
    root_dir: Any

    def __init__(self, verbose: bool = False, verbose_file: Any = None) -> None: ...
    def load_rknn(self, path: Any, key_path: Any = None) -> Any: ...
    def list_devices(self) -> Any: ...
    def init_runtime(
        self,
        target: Any = None,
        device_id: Any = None,
        async_mode: bool = False,
        core_mask: Any = ...,
    ) -> Any: ...
    def inference(
        self,
        inputs: Any,
        data_type: Any = None,
        data_format: Any = None,
        inputs_pass_through: Any = None,
        get_frame_id: bool = False,
        reuse_outputs: bool = False,
    ) -> Any: ...
    def get_sdk_version(self) -> Any: ...
    def list_support_target_platform(self, rknn_model: Any = None) -> Any: ...
    def release(self) -> None: ...
