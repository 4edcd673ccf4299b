# acl.rt: see acl/__init__.pyi. An int alone is an error code; a pair ends with it.

def set_device(device: int, /) -> int: ...  # aclrtSetDevice
def create_context(device: int, /) -> tuple[int, int]: ...  # aclrtCreateContext
def set_context(context: int, /) -> int: ...  # aclrtSetCurrentContext
def get_run_mode() -> tuple[int, int]: ...  # aclrtGetRunMode
def create_stream() -> tuple[int, int]: ...  # aclrtCreateStream
def synchronize_stream(stream: int, /) -> int: ...  # aclrtSynchronizeStream
def malloc(size: int, policy: int, /) -> tuple[int, int]: ...  # aclrtMalloc
def free(address: int, /) -> int: ...  # aclrtFree
def memcpy(to: int, most: int, source: int, count: int, kind: int, /) -> int: ...  # aclrtMemcpy
