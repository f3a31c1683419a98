"""Numbers of the additive kernels and of their squared distances, as ``kernels.additive_term`` takes them."""

CHI2, INTERSECTION, JENSEN_SHANNON, HELLINGER = 0, 1, 2, 3
LOG_SECH = 8  # ln sech(ln x - ln y), for products over bins
DISTANCE = 4  # CHI2 + DISTANCE is the squared distance of chi2, and so on
