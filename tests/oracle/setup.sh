#!/bin/sh
# What some tests would like and skip without: scipy, scikit-learn, statsmodels and pyarrow as oracles, in target/oracle, and a browser
# for the page.
# Nothing here may fail a build: machines without a package index exist.
cd "$(dirname "$0")/../.." || exit 0
if ! target/oracle/bin/python -c "import scipy, sklearn, statsmodels, pyarrow" 2>/dev/null; then
    python3 -m venv target/oracle && target/oracle/bin/pip install -q scipy==1.17.1 scikit-learn==1.9.1 statsmodels==0.15.0 \
        pyarrow==26.0.1 ||
        echo "oracle: no scipy, scikit-learn, statsmodels and pyarrow here; their tests will be skipped" >&2
fi
# Its rules say whether a page can be used without seeing it, or by the keyboard alone.
if ! target/oracle/bin/python -c "import axe_core_python" 2>/dev/null; then
    target/oracle/bin/pip install -q --no-deps axe-core-python==0.1.0 ||
        echo "oracle: no axe-core here; the test of the page will be skipped" >&2
fi
if ! command -v chromium >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get install -qq -y --no-install-recommends chromium >/dev/null 2>&1 ||
        echo "oracle: no chromium here; the test of the page will be skipped" >&2
fi
exit 0
