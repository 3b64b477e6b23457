/* Calls one function of a library in this process, for a test that runs in another.

   Usage: remote LIBRARY ENTRY. Standard input holds the arguments: how many there are, then each as its size in
   bytes and, if that is 0, a number; if it is positive, an array; if it is -1, the address of a structure that
   follows as arguments do. All but the bytes of arrays are int64. Standard output gets what the
   function returned, and then all arrays, in the order in which they came. */

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 100, ARGUMENTS = 11 };

static char *arrays[MOST];
static int64_t sizes[MOST], n_arrays;

static int64_t read_number(void) {
    int64_t number;
    if (fread(&number, sizeof number, 1, stdin) != 1)
        exit(3);
    return number;
}

static int64_t read_array(int64_t size) {
    char *bytes = malloc(size);
    if (n_arrays == MOST || fread(bytes, 1, size, stdin) != (size_t)size)
        exit(3);
    sizes[n_arrays] = size;
    arrays[n_arrays++] = bytes;
    return (int64_t)(intptr_t)bytes;
}

/* Read arguments, or the fields of a structure, which are all as long as a number. */
static int64_t *read_values(void) {
    int64_t count = read_number(), *values = calloc(count + ARGUMENTS, sizeof *values);
    for (int64_t i = 0; i < count; i++) {
        int64_t size = read_number();
        values[i] = size == 0 ? read_number() : size > 0 ? read_array(size) : (int64_t)(intptr_t)read_values();
    }
    return values;
}

int main(int count, char **words) {
    typedef int64_t Entry(
        int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t);
    void *library = count == 3 ? dlopen(words[1], RTLD_NOW) : NULL;
    Entry *entry = library ? (Entry *)dlsym(library, words[2]) : NULL;
    if (!entry) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    int64_t *v = read_values();
    int64_t result = entry(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10]);
    fwrite(&result, sizeof result, 1, stdout);
    for (int64_t i = 0; i < n_arrays; i++)
        fwrite(arrays[i], 1, sizes[i], stdout);
    return 0;
}
