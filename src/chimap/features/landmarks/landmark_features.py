"""Landmark features of the exponential kernels, by one matrix product in mapped space."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from chimap import _arrays
from chimap._errors import InputError
from chimap._types import ArrayLike, MatrixLike, RandomState, Rows, Transformed
from chimap._validation import check_choice, check_positive, validated_rows
from chimap.features.additive import check_map
from chimap.features.additive.base import AdditiveMap
from chimap.features.landmarks.choosing import CATALOGUE, given_landmarks, sample_rows
from chimap.features.landmarks.unit_gaussian import takes, unit_gaussian_map
from chimap.features.landmarks.whitened import WhitenedLandmarks
from chimap.kernels import Gaussian, Kernel, as_kernel
from chimap.model_files import Transformer

if TYPE_CHECKING:
    from sklearn.utils import Tags


class LandmarkFeatures(WhitenedLandmarks, ClassNamePrefixFeaturesOutMixin, Transformer, BaseEstimator):
    """Features from the kernel values with m landmarks, for the exponential kernels.

        z(x) = R^-T (K(x, l_1), .., K(x, l_m)), with K_LL = R'R the kernel of the landmarks l_i.

    z(x) . z(y) is the kernel where x or y is a landmark, and never above it on the diagonal. The values of an
    exponential kernel K(x, y) = exp(-gamma |Psi(x) - Psi(y)|^2) with all landmarks are one product of mapped rows
    (n, p) and mapped landmarks (p, m): each row takes 2 p m + m^2 operations. One landmark is worth five to ten random
    features.

    Parameters
    ----------
    kernel : str or Kernel, default="exp-chi2"
        "exp-chi2", "exp-intersection", "exp-jensen_shannon", "exp-hellinger", "gaussian", an ``Exponential``, or a
        product of these over different columns (``OnColumns``, ``Anisotropic``): one set of landmarks then serves all
        descriptors, each with its width.
    n_components : int, default=1000
        m, the number of landmarks; with fewer distinct rows all of them are taken.
    gamma : float or str, default="mean"
        A number; "mean", 1 / mean D^2 over pairs of the rows; or a multiple of that, such as "2*mean". A kernel object
        has its own gamma.
    map : AdditiveMap or None, default=None
        Psi, unfitted; None is ``OptimalMap(n_terms=n_terms)``. It becomes part of the kernel's definition, so one term
        for each bin is as good as more, and cheaper.
    n_terms : int, default=1
        Terms for each bin of that default map.
    landmarks : str or array of shape (m, bins), default="kmeans"
        "kmeans" (centres of a few rounds of k-means on mapped rows), "uniform" (rows at random), "rpcholesky" (randomly
        pivoted Cholesky), or the landmarks as rows.
    random_state : int, RandomState or None, default=None
        Seed or generator for the sample of rows and the landmarks. None differs at each fit.

    Attributes
    ----------
    kernel_ : Kernel
        The exact kernel, its gamma a number.
    landmarks_ : ndarray of shape (m, mapped bins)
        The landmarks as scaled, centred mapped rows u, in which the kernel is exp(-|u - v|^2 / 2).
    projection_ : ndarray of shape (m, m)
        R^-1, upper triangular.
    n_landmarks_ : int
        Landmarks in use: fewer than ``n_components`` where rows are few, or so alike that their floating type cannot
        tell more apart.
    n_features_in_ : int
        Number of bins.

    Raises
    ------
    ValueError
        For kernels without a map (``NystroemFeatures`` takes every kernel) and parameters out of range.
    DataError
        From ``fit`` and ``transform``, for entries that the kernel does not take; for gamma="mean" if all rows are
        equal.

    References
    ----------
    Williams and Seeger, Using the Nystrom method to speed up kernel machines. Zhang and Kwok, Clustered Nystrom method.
    Epperly, Tropp and Webber, Embrace rejection: kernel matrix approximation by accelerated randomly pivoted Cholesky.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).dirichlet(np.ones(8), size=200)
    >>> features = LandmarkFeatures("exp-chi2", n_components=100, n_terms=3, random_state=0).fit(X)
    >>> Z = features.transform(X)
    >>> bool(abs(Z @ Z.T - features.kernel_(X)).mean() < 0.01)
    True
    """

    n_features_in_: int
    kernel_: Kernel

    def __init__(
        self,
        kernel: str | Kernel = "exp-chi2",
        n_components: int = 1000,
        *,
        gamma: float | str = "mean",
        map: AdditiveMap | None = None,
        n_terms: int = 1,
        landmarks: str | MatrixLike = "kmeans",
        random_state: RandomState = None,
    ):
        self.kernel = kernel
        self.n_components = n_components
        self.gamma = gamma
        self.map = map
        self.n_terms = n_terms
        self.landmarks = landmarks
        self.random_state = random_state

    @classmethod
    def takes(cls, kernel: Kernel) -> bool:
        """Return whether a kernel is exponential over an additive or the linear kernel, or a product of such kernels.

        Parameters
        ----------
        kernel : Kernel
            Kernel to approximate.
        """
        return takes(kernel)

    def fit(self, X: MatrixLike, y: ArrayLike | None = None) -> LandmarkFeatures:
        """Fit the map and gamma on a sample of rows, choose landmarks and factorise their kernel.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, bins)
            Rows to fit on.
        y : None, default=None
            Not used; accepted for pipelines of scikit-learn.
        """
        kernel = self._check_parameters()
        rows = validated_rows(self, X, reset=True, signed=kernel.is_signed)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        wanted = sample_rows(self.n_components)
        if rows.shape[0] > wanted:
            rows = _arrays.take_rows(rows, np.sort(rng.choice(rows.shape[0], wanted, replace=False)))
        self.unit_map_, self.kernel_ = unit_gaussian_map(kernel, rows, self.map, self.n_terms)
        self._factorise(self._choose(rows, rng))
        return self

    def _check_parameters(self) -> Kernel:
        check_positive(self.n_components, "n_components", integer=True)
        check_positive(self.n_terms, "n_terms", integer=True)
        if self.map is not None:
            check_map(self.map)
        if isinstance(self.landmarks, str):
            check_choice(self.landmarks, "landmarks", tuple(CATALOGUE))
        kernel = as_kernel(self.kernel, self.gamma)
        if not takes(kernel):
            raise InputError(
                f"LandmarkFeatures takes exponential kernels, such as 'exp-chi2' and 'gaussian', and products of them; "
                f"got {kernel.name!r}. NystroemFeatures takes every kernel."
            )
        return kernel

    def _choose(self, rows: Rows, rng: np.random.Generator) -> np.ndarray:
        """Return the landmarks as mapped rows (m, p), dense."""
        if not isinstance(self.landmarks, str):
            rows_given = given_landmarks(self.landmarks, rows, type(self).__name__)
            return np.asarray(_arrays.to_dense(self.unit_map_.values(rows_given)))
        u = self.unit_map_.values(rows)
        chosen = CATALOGUE[self.landmarks](Gaussian(0.5), u, min(self.n_components, u.shape[0]), rng)
        return np.asarray(_arrays.to_dense(chosen))

    @property
    def gamma_(self) -> float | None:
        """gamma of the kernel; None where the kernel has several."""
        return getattr(self.kernel_, "gamma", None)

    @property
    def largest_(self) -> np.ndarray:
        """Largest magnitude of each bin in the rows of ``fit``, (bins,); 1 where the map does not keep it."""
        out = np.zeros(self.n_features_in_)
        for factor in self.unit_map_.factors:
            columns = np.arange(out.size) if factor.columns is None else factor.columns
            out[columns] = np.maximum(out[columns], getattr(factor.map, "largest_", 1.0))
        return out

    def transform(self, X: MatrixLike) -> Transformed:
        """Return the features of rows, dense.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, bins)
            Rows of any library: numpy, scipy, torch or cupy.

        Returns
        -------
        array of shape (n, n_landmarks_)
            Features in the floating type of X; those of a tensor of torch or an array of cupy stay on its device.
        """
        check_is_fitted(self)
        rows = validated_rows(self, X, reset=False, signed=self.kernel_.is_signed, on_device=True)
        if _arrays.is_on_device(rows):
            return self.bound(rows)(rows)
        out = np.empty((rows.shape[0], self._n_features_out), dtype=rows.dtype)
        self.features_into(rows, out)
        return out

    def describe(self) -> str:
        """Return a short description, such as "1,000 landmarks, kmeans, over OptimalMap, 1 term per bin"."""
        how = self.landmarks if isinstance(self.landmarks, str) else "given"
        wanted = self.n_components if isinstance(self.landmarks, str) else self.n_landmarks_
        fewer = f" (of {wanted:,} wanted)" if self.n_landmarks_ < wanted else ""
        return f"{self.n_landmarks_:,} landmarks{fewer}, {how}, over {self.unit_map_.describe()}"

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = not as_kernel(self.kernel, self.gamma).is_signed
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
