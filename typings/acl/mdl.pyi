# acl.mdl: see acl/__init__.pyi.

def load_from_file(path: str, /) -> tuple[int, int]: ...  # aclmdlLoadFromFile
def unload(model: int, /) -> int: ...  # aclmdlUnload
def execute(model: int, inputs: int, outputs: int, /) -> int: ...  # aclmdlExecute
def create_desc() -> int: ...  # aclmdlCreateDesc
def get_desc(desc: int, model: int, /) -> int: ...  # aclmdlGetDesc
def destroy_desc(desc: int, /) -> int: ...  # aclmdlDestroyDesc
def get_input_size_by_index(desc: int, index: int, /) -> int: ...  # aclmdlGetInputSizeByIndex
def get_output_size_by_index(desc: int, index: int, /) -> int: ...  # aclmdlGetOutputSizeByIndex
def create_dataset() -> int: ...  # aclmdlCreateDataset
def add_dataset_buffer(dataset: int, buffer: int, /) -> tuple[int, int]: ...  # aclmdlAddDatasetBuffer
def get_dataset_num_buffers(dataset: int, /) -> int: ...  # aclmdlGetDatasetNumBuffers
def get_dataset_buffer(dataset: int, index: int, /) -> int: ...  # aclmdlGetDatasetBuffer
def destroy_dataset(dataset: int, /) -> int: ...  # aclmdlDestroyDataset
