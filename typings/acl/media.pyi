# acl.media, DVPP: see acl/__init__.pyi.

def dvpp_malloc(size: int, /) -> tuple[int, int]: ...  # acldvppMalloc
def dvpp_free(address: int, /) -> int: ...  # acldvppFree
def dvpp_create_channel_desc() -> int: ...  # acldvppCreateChannelDesc
def dvpp_create_channel(desc: int, /) -> int: ...  # acldvppCreateChannel
def dvpp_create_pic_desc() -> int: ...  # acldvppCreatePicDesc
def dvpp_destroy_pic_desc(picture: int, /) -> int: ...  # acldvppDestroyPicDesc
def dvpp_set_pic_desc_data(picture: int, address: int, /) -> int: ...  # acldvppSetPicDescData
def dvpp_set_pic_desc_size(picture: int, size: int, /) -> int: ...  # acldvppSetPicDescSize
def dvpp_set_pic_desc_format(picture: int, format: int, /) -> int: ...  # acldvppSetPicDescFormat
def dvpp_set_pic_desc_width(picture: int, width: int, /) -> int: ...  # acldvppSetPicDescWidth
def dvpp_set_pic_desc_height(picture: int, height: int, /) -> int: ...  # acldvppSetPicDescHeight
def dvpp_set_pic_desc_width_stride(picture: int, bytes: int, /) -> int: ...  # acldvppSetPicDescWidthStride
def dvpp_set_pic_desc_height_stride(picture: int, rows: int, /) -> int: ...  # acldvppSetPicDescHeightStride
def dvpp_get_pic_desc_width(picture: int, /) -> int: ...  # acldvppGetPicDescWidth
def dvpp_get_pic_desc_height(picture: int, /) -> int: ...  # acldvppGetPicDescHeight
def dvpp_get_pic_desc_ret_code(picture: int, /) -> int: ...  # acldvppGetPicDescRetCode
def dvpp_create_resize_config() -> int: ...  # acldvppCreateResizeConfig
def dvpp_set_resize_config_interpolation(config: int, kind: int, /) -> int: ...  # acldvppSetResizeConfigInterpolation
def dvpp_jpeg_decode_async(channel: int, data: int, size: int, picture: int, stream: int, /) -> int: ...  # acldvppJpegDecodeAsync
def dvpp_vpc_resize_async(channel: int, source: int, target: int, config: int, stream: int, /) -> int: ...  # acldvppVpcResizeAsync
