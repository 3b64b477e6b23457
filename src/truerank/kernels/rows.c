/* Checks of the places of a sparse matrix. */

#include "rows.h"

int lies_within(const Rows *rows, int64_t start, int64_t stop, int64_t width) {
    const int64_t *begin = rows->begin;
    if (start < 0 || start > stop || stop > rows->count || begin[start] < 0 || begin[stop] > rows->size)
        return 0;
    int is_wrong = 0;
    for (int64_t row = start; row < stop; row++)
        is_wrong |= begin[row] > begin[row + 1];
    if (is_wrong)
        return 0;
    for (int64_t k = begin[start]; k < begin[stop]; k++)
        is_wrong |= (rows->columns[k] < 0) | (rows->columns[k] >= width);
    return !is_wrong;
}

int64_t check_columns(const Rows *rows, int64_t width) {
    if (!lies_within(rows, 0, rows->count, width))
        return INVALID;
    int is_wrong = 0;
    for (int64_t row = 0; row < rows->count; row++)
        for (int64_t k = rows->begin[row] + 1; k < rows->begin[row + 1]; k++)
            is_wrong |= rows->columns[k - 1] >= rows->columns[k];
    return is_wrong ? INVALID : DONE;
}
