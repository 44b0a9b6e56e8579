"""BCa interval of a quantile by scipy. Arguments: file of f64, p, confidence, resamples."""

import json
import sys
import time

import numpy as np
import scipy
from scipy.stats import bootstrap

path, p, confidence, resamples = sys.argv[1], *map(float, sys.argv[2:4]), int(sys.argv[4])
sample = np.fromfile(path, dtype="<f8")


def quantile(values, axis):
    # Type 1, as goodput reports: the smallest value that at least a share p does not exceed.
    return np.quantile(values, p, axis=axis, method="inverted_cdf")


start = time.perf_counter()
# Without a batch scipy asks for all resamples at once: more memory than most hosts have.
result = bootstrap(
    (sample,),
    quantile,
    confidence_level=confidence,
    n_resamples=resamples,
    batch=50,
    method="BCa",
    rng=np.random.default_rng(1),
)
seconds = time.perf_counter() - start
interval = result.confidence_interval
print(
    json.dumps(
        {
            "version": scipy.__version__,
            "resamples": resamples,
            "seconds": seconds,
            "ends": [float(interval.low), float(interval.high)],
        }
    )
)
