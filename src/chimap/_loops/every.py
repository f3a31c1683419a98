"""Every loop. ``_loops`` imports this module when a loop is first used."""

from chimap._loops.anchors import (
    LANES,
    blended_features,
    kmeans_on_line,
    looked_up_features,
    lookup_sums,
    lookup_sums_sparse,
    scatter_sums,
    scatter_sums_sparse,
    searched_codes,
    staircase_features,
    uniform_codes,
)
from chimap._loops.bits import codes_of_levels, differing_bits, signs
from chimap._loops.dirichlet import dirichlet_features
from chimap._loops.fourier import row_times_dense, sparse_times_dense, waves
from chimap._loops.groups import group_norms, group_residuals, sweep_groups
from chimap._loops.hadamard import structured_projection
from chimap._loops.kernels import pair_sums, pair_sums_gamma, pair_sums_sparse
from chimap._loops.landmarks import (
    add_sparse_products,
    add_to_rows,
    centre_rows,
    centre_sparse,
    distances_to_values,
    kernel_less_one,
)
from chimap._loops.maps import (
    chebyshev_features,
    combined_terms,
    count_cells,
    direct_features,
    direct_features_by_bin,
    homogeneous_features,
    interleave_sparse,
    landmark_features,
    stationary_features,
    table_features,
)
from chimap._loops.minmax import consistent_samples
from chimap._loops.moments import add_by_class, add_triangle, panel_product
from chimap._loops.online import intersection_steps, table_scores
from chimap._loops.ordinal import concordance
from chimap._loops.rounding import join_upper_halves, round_to_bfloat16, split_to_bfloat16
from chimap._loops.tables import TABLE_END, dense_table_scores, pieces_of, sparse_table_scores
from chimap._loops.vision import (
    add_at_places,
    cell_shares,
    hog_cells,
    largest,
    scan_windows,
    share_orientations,
    sift_vectors,
)

__all__ = [
    "LANES",
    "TABLE_END",
    "add_at_places",
    "add_by_class",
    "add_sparse_products",
    "distances_to_values",
    "add_to_rows",
    "add_triangle",
    "blended_features",
    "cell_shares",
    "centre_rows",
    "centre_sparse",
    "chebyshev_features",
    "combined_terms",
    "codes_of_levels",
    "concordance",
    "consistent_samples",
    "count_cells",
    "dense_table_scores",
    "differing_bits",
    "direct_features",
    "direct_features_by_bin",
    "dirichlet_features",
    "group_norms",
    "group_residuals",
    "hog_cells",
    "homogeneous_features",
    "interleave_sparse",
    "intersection_steps",
    "kernel_less_one",
    "kmeans_on_line",
    "landmark_features",
    "largest",
    "looked_up_features",
    "lookup_sums",
    "lookup_sums_sparse",
    "pair_sums",
    "pair_sums_gamma",
    "pair_sums_sparse",
    "panel_product",
    "pieces_of",
    "join_upper_halves",
    "round_to_bfloat16",
    "row_times_dense",
    "scan_windows",
    "scatter_sums",
    "scatter_sums_sparse",
    "searched_codes",
    "share_orientations",
    "sift_vectors",
    "signs",
    "sparse_table_scores",
    "sparse_times_dense",
    "split_to_bfloat16",
    "staircase_features",
    "stationary_features",
    "structured_projection",
    "sweep_groups",
    "table_features",
    "table_scores",
    "uniform_codes",
    "waves",
]
