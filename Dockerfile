# The simulator on a CPU, with the stacks of Pillow, OpenCV, FFmpeg and ONNX Runtime.
#
#     docker build -t simulate .
#     docker run --rm -v "$PWD:/work" --user "$(id -u):$(id -g)" simulate --train pillow_fp32 --deploy opencv_fp32
#
# More libraries: docker build --build-arg EXTRAS=openvino,onnxruntime,opencv,demo -t simulate .
FROM python:3.11-slim
ARG EXTRAS=opencv,ffmpeg,onnxruntime,demo,coco
COPY . /src
RUN pip install --no-cache-dir --no-compile -c /src/constraints.txt "/src[$EXTRAS]" && rm -r /src
RUN useradd --create-home user && mkdir -m 777 /cache /work
ENV HOME=/cache
USER user
WORKDIR /work
ENTRYPOINT ["simulate"]
