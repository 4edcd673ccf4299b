# Huawei CANN's Python module ``acl`` (pyACL), as far as backends/ascend uses it. CANN is in no
# package index, so this file is written by hand: number, order and kinds of arguments and results
# are those of PyArg_ParseTuple and Py_BuildValue in the C++ source of pyACL that Huawei published
# in 2026 (functions WrapAcl...), and of "pyACL API Reference" of CANN 8.0
# (hiascend.com/document/detail/en/canncommercial/800/apiref/aclpythondevapi). Arguments have no
# names there, so none can be given by name. Every address and handle is an int.
from acl import mdl as mdl, media as media, rt as rt

def init(config: str = ..., /) -> int: ...  # aclInit
def get_soc_name() -> str | None: ...  # aclrtGetSocName; None: it failed
def create_data_buffer(data: int, size: int, /) -> int: ...  # aclCreateDataBuffer
def destroy_data_buffer(buffer: int, /) -> int: ...  # aclDestroyDataBuffer
