/* The functions that the library exports, and what they expect of their arguments.

   Called by `truerank.kernels.library`, which declares the same types in Python; a test compares the
   two. Functions may run in several threads at the same time, as long as no two of them write to the
   same arrays. None keeps a pointer, starts a thread or changes the floating-point environment.

   Malformed lists cannot make a function read or write outside its arrays: it stops reading the list,
   which leaves `next` short of `end`, or returns INVALID. The lengths of the arrays themselves are
   not checked.

   A score of factors is the chain s = fma(u[k], v[k], s), k = 0, 1, ..., starting from s = 0,
   and finally s + bias. It depends only on the two rows: not on the block, the position in it, the
   thread, or the variant of the library. */

#ifndef KERNELS_H
#define KERNELS_H

#include <stdint.h>

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

enum {
    DONE = 0,
    GAVE_UP = 1,    /* float32 leaves too much undecided; the counts must be reset */
    INVALID = -2,   /* a span is not within its list, or a held-out item is not in the catalogue */
    NO_MEMORY = -3,
};

/* Rows of numbers: row r, column k is numbers[r * row_step + k * column_step]. */
typedef struct {
    const void *numbers;
    int64_t rows, columns;
    int64_t row_step, column_step;
} Matrix;

/* One ascending list of items per user: items[begin[user]] to items[end[user] - 1].

   `next` is where to continue reading; it starts at `begin` and is `end` once all items are counted. */
typedef struct {
    const int32_t *items;
    int64_t size; /* of `items` */
    const int64_t *begin, *end;
    int64_t *next;
} Lists;

/* Users, their two lists, and the counts for each held-out item.

   `targets`, of the type of the scores, and `order` are filled in from each user's highest score
   down: order[j] is the index in test.items, with ties in the order of the list. above[j] and tied[j],
   both initially 0, count candidates whose score is higher than, and equal to, target j. seen[j] is set
   to whether test.items[j] is among the user's training items. */
typedef struct {
    int64_t users;
    Lists train, test;
    void *targets;
    int64_t *order;
    uint8_t *seen;
    int64_t *above, *tied;
} Block;

/* Return the x86-64 level that this processor and operating system support: 1, 3, or 4 if there is VNNI, too; 0 on other
   processors. */
EXPORT int64_t processor_level(void);

/* Count the items start..stop - 1 for all users of the block; return DONE, INVALID or NO_MEMORY.

   Row u of `users` belongs to user u of the block; if there is a `bias` (NULL if not), it has one
   column more than `items`, which is 1. Scores must be finite. The calls for a block cover the
   catalogue in order, from 0 to its end: the first finds the targets, the last completes the counts. */
EXPORT int64_t count_factors_float32(
    const Matrix *users, const Matrix *items, const float *bias, Block *block, int64_t start, int64_t stop);
EXPORT int64_t count_factors_float64(
    const Matrix *users, const Matrix *items, const double *bias, Block *block, int64_t start, int64_t stop);

/* Return the counts of `count_factors_float64`, from float32 scores where these suffice; or return GAVE_UP. */
EXPORT int64_t count_narrow(
    const Matrix *users, const Matrix *items, const double *bias, Block *block, int64_t start, int64_t stop);

/* The catalogue in another order: the item at each place, and at least the length of its factors. */
typedef struct {
    int64_t size;
    const int32_t *items;
    const double *lengths;
} Ordered;

/* Count as `count_factors`, but only down to a depth: an item with at least `depth` candidates above it has above[j] =
   depth and tied[j] = 0. The calls cover the catalogue in the order given, each from a multiple of 256 on. `seen`
   stays as it is, and `train` is what `place_lists` wrote; the first call sorts it. */
EXPORT int64_t count_top_float32(
    const Matrix *users, const Matrix *items, const float *bias, Block *block, const Ordered *ordered, int64_t depth,
    int64_t start, int64_t stop);
EXPORT int64_t count_top_float64(
    const Matrix *users, const Matrix *items, const double *bias, Block *block, const Ordered *ordered, int64_t depth,
    int64_t start, int64_t stop);

/* Return the counts of `count_top_float32`, mostly from whole numbers of 16 bits; or return GAVE_UP. With a depth of
   INT64_MAX these are the counts of `count_factors_float32`. */
EXPORT int64_t count_int16(
    const Matrix *users, const Matrix *items, const float *bias, Block *block, const Ordered *ordered, int64_t depth,
    int64_t start, int64_t stop);

/* The same, from whole numbers of 8 bits after the first places; for depths that are a small part of the catalogue. */
EXPORT int64_t count_sieve(
    const Matrix *users, const Matrix *items, const float *bias, Block *block, const Ordered *ordered, int64_t depth,
    int64_t start, int64_t stop);

/* Return how many whole numbers of 16 bits are compared at a time; 0 if the loops with them always give up. */
EXPORT int64_t int16_lanes(void);

/* Write for user u, from placed[train.begin[u] + test.begin[u]] on, the places of the items of both lists, and fill in
   `seen`. It stops at the first user with a list out of order or range. Return DONE, INVALID or NO_MEMORY. */
EXPORT int64_t place_lists(Block *block, const int32_t *places, int64_t n_items, int32_t *placed);

/* Count all items for rows of scores; return the flat index, user * columns + item, of a candidate's
   score that is not finite, or else -1, INVALID or NO_MEMORY. */
EXPORT int64_t count_scores_float32(const Matrix *scores, Block *block);
EXPORT int64_t count_scores_float64(const Matrix *scores, Block *block);

/* Write the scores of `size` pairs of a row of `users` and a row of `items`, which have equally many columns. It is fast
   if pairs of the same user follow each other and columns have step 1. Return DONE, or INVALID if a pair is not of
   such rows. */
EXPORT int64_t score_pairs_float32(
    const Matrix *users, const Matrix *items, const float *bias, const int64_t *user_of, const int64_t *item_of,
    int64_t size, float *scores);
EXPORT int64_t score_pairs_float64(
    const Matrix *users, const Matrix *items, const double *bias, const int64_t *user_of, const int64_t *item_of,
    int64_t size, double *scores);

/* A sparse matrix without values: row r has entries at columns[begin[r]] to
   columns[begin[r + 1] - 1]. */
typedef struct {
    int64_t count; /* of rows; `begin` has one more entry */
    const int64_t *begin;
    const int32_t *columns;
    int64_t size; /* of `columns` */
} Rows;

/* Random items for users: sizes[u] of them from a stream of random words that seeds[u] determines. The items of a user
   depend on nothing else but the catalogue, the way, and the items that are not to be drawn. */
enum {
    DISTINCT, /* every set is equally likely */
    NESTED,   /* the same, and the items for a smaller size are some of those for a larger one */
    REPEATED, /* with repetition: every item is equally likely each time */
};
typedef struct {
    int64_t n_items, users, way;
    const uint64_t *seeds;
    const int64_t *sizes;
} Draws;

/* Write the items of all users, one after the other, with room for 8 more; none of `excluded` and of `taken`, whose lists
   are in any order, is drawn. In what is NESTED, draws continue if the items of the former ones are taken. Return DONE,
   INVALID if a list is not in the catalogue or too few items are left, or NO_MEMORY. */
EXPORT int64_t draw_items(const Draws *draws, Lists *excluded, Lists *taken, int32_t *items);

/* Factors in whole numbers of 16 bits, the bias included: what is rounded is the factor divided by `unit`, the same for all
   rows, so that no row of them is longer than LONGEST_WHOLE. Rows are contiguous, and padded with zeros to a multiple
   of WHOLE_COLUMNS. `unit` is 0 if the factors are too small. */
enum { LONGEST_WHOLE = 32767, WHOLE_COLUMNS = 16, MOST_WHOLE_COLUMNS = 1024 };
EXPORT int64_t round_factors_float32(const Matrix *items, const float *bias, int16_t *whole, double *unit);
EXPORT int64_t round_factors_float64(const Matrix *items, const double *bias, int16_t *whole, double *unit);

/* Score and count the relevant items of users and items drawn for them, or, without `draws`, those in `train`; from
   whole numbers, where these decide, unless they are NULL. Users are as in `count_factors`. Return DONE, INVALID or
   NO_MEMORY. */
EXPORT int64_t count_among_float32(
    const Matrix *users, const Matrix *items, const float *bias, const int16_t *whole, const double *unit, Block *block,
    const Draws *draws);
EXPORT int64_t count_among_float64(
    const Matrix *users, const Matrix *items, const double *bias, const int16_t *whole, const double *unit, Block *block,
    const Draws *draws);

/* Write to `total`, of width x width numbers, the sum of the outer products of the rows start..stop - 1 of
   `factors` with themselves; only the upper triangle is valid. `width` is a multiple of 16. `products`
   has the same size as `total`. Return DONE or INVALID. */
EXPORT int64_t sum_squares(
    const float *factors, int64_t width, int64_t start, int64_t stop, double *total, float *products);

/* Solve (shared_gram + sum_j f_j f_j' + penalty I) v = sum_j f_j for the rows start..stop - 1, where j runs over
   the row's columns and f_j is a row of `factors`, in float32, contiguous, with a multiple of 16 columns. Only
   the upper triangle of `shared_gram` is used. Solutions are rows as long as those of the factors. Return
   DONE, INVALID if a column is not a row of the factors, or NO_MEMORY. */
EXPORT int64_t solve_rows(
    const Rows *rows, int64_t start, int64_t stop, const Matrix *factors, const double *shared_gram,
    const double *penalties, double *solutions);

/* Go `steps` steps of conjugate gradients from the vectors in `solutions`, in float32, towards what `solve_rows` finds.
   `everywhere` is symmetric throughout. Return as `solve_rows`. */
EXPORT int64_t improve_rows(
    const Rows *rows, int64_t start, int64_t stop, const Matrix *factors, const float *everywhere,
    const double *penalties, int64_t steps, float *solutions);

/* Return the number of rows and columns of a block for the two functions that follow. */
EXPORT int64_t inverse_block(void);

/* Overwrite a positive definite block, both triangles of it, with its inverse (Gauss-Jordan); return DONE. */
EXPORT int64_t invert_block(double *block);

/* Subtract panel' pivot panel from the block of columns of `matrix` that starts at `start`, down to the
   diagonal; its part of pivot @ panel is written to `scaled`. Rows of `matrix`, `panel` and `scaled` have
   `width` numbers, a multiple of the block. Return DONE or INVALID. */
EXPORT int64_t sweep_columns(
    double *matrix, int64_t width, const double *panel, const double *pivot, double *scaled, int64_t start);

/* Rows of a sparse matrix with its values, of the type of the scores: users' histories, or similarities. */
typedef struct {
    Rows rows;
    const void *weights; /* one per stored column */
} Histories;

/* Write to rows of `scores`, one per history, the history's weighted sum of rows of `similarity`, whose rows
   are contiguous. Return DONE, or INVALID if a history holds what is no row of the similarity. */
EXPORT int64_t score_dense_float32(const Histories *histories, const Matrix *similarity, float *scores);
EXPORT int64_t score_dense_float64(const Histories *histories, const Matrix *similarity, double *scores);

/* The same for a sparse matrix that `check_columns` has found to be right; `width` is the length of a row of scores. */
EXPORT int64_t score_sparse_float32(
    const Histories *histories, const Histories *similarity, int64_t width, float *scores);
EXPORT int64_t score_sparse_float64(
    const Histories *histories, const Histories *similarity, int64_t width, double *scores);

/* Score by a sparse matrix and count in one go; return as `count_scores`. History u belongs to user u of the block. */
EXPORT int64_t count_sparse_float32(
    const Histories *histories, const Histories *similarity, int64_t width, Block *block);
EXPORT int64_t count_sparse_float64(
    const Histories *histories, const Histories *similarity, int64_t width, Block *block);

/* The k best items of each user: row u of `scores`, of the type of the scores, and of `items`, with the highest score
   first and, of equal ones, the lower item first. `found`, initially 0, counts those in each row. Items of
   `excluded` are left out. */
typedef struct {
    int64_t users, k;
    Lists excluded;
    void *scores;
    int32_t *items;
    int64_t *found;
} Best;

/* Search the items at places start..stop - 1 for all users; return DONE, INVALID or NO_MEMORY. `excluded` is what
   `place_lists` wrote. Otherwise as `count_top`. */
EXPORT int64_t best_factors_float32(
    const Matrix *users, const Matrix *items, const float *bias, Best *best, const Ordered *ordered, int64_t start,
    int64_t stop);
EXPORT int64_t best_factors_float64(
    const Matrix *users, const Matrix *items, const double *bias, Best *best, const Ordered *ordered, int64_t start,
    int64_t stop);

/* The same, mostly from whole numbers of 8 bits, after `best_factors_float32` has searched the first places; or return
   GAVE_UP, after which what was found must be discarded. */
EXPORT int64_t best_sieve(
    const Matrix *users, const Matrix *items, const float *bias, Best *best, const Ordered *ordered, int64_t start,
    int64_t stop);

/* Search rows of scores; return as `count_scores`. */
EXPORT int64_t best_scores_float32(const Matrix *scores, Best *best);
EXPORT int64_t best_scores_float64(const Matrix *scores, Best *best);

/* Score by a sparse matrix and search in one go; return as `count_scores`. History u belongs to user u. */
EXPORT int64_t best_sparse_float32(
    const Histories *histories, const Histories *similarity, int64_t width, Best *best);
EXPORT int64_t best_sparse_float64(
    const Histories *histories, const Histories *similarity, int64_t width, Best *best);

/* Return DONE if `begin` ascends within the columns, and the columns of each row ascend, none twice, in
   0..width - 1; else INVALID. */
EXPORT int64_t check_columns(const Rows *rows, int64_t width);

/* Return the most entries that `count_together` can write for the items start..stop - 1, or INVALID. */
EXPORT int64_t most_together(const Rows *by_item, const Rows *by_user, int64_t start, int64_t stop);

/* Write, for the items start..stop - 1, how many users each shares with other items: row by row the columns,
   ascending, and the counts that are not 0, with room for one entry more than `most_together` says, and to
   `begin` where each row begins, and ends. `by_item` has the users of items, `by_user` the items of users,
   none twice. Return DONE, INVALID or NO_MEMORY. */
EXPORT int64_t count_together(
    const Rows *by_item, const Rows *by_user, int64_t start, int64_t stop, int64_t *begin, int32_t *columns,
    double *counts);

/* Keep the k largest values of each row of a sparse matrix, of equal ones the first, and move them to the front.
   `columns` and `values` have `size` numbers. Return DONE, INVALID or NO_MEMORY. */
EXPORT int64_t keep_largest(int64_t rows, int64_t *begin, int32_t *columns, double *values, int64_t size, int64_t k);

#endif
