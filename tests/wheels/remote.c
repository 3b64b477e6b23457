/* Calls functions of a library in this process, for a test that runs in another.

   Usage: remote LIBRARY. Standard input holds calls, one after another: the name of a function, with its length before
   it, and its arguments: how many there are, then each as its size in bytes and, if that is 0, a number; if it is
   positive, an array; if it is -1, the address of a structure that follows as arguments do. All but names and the bytes
   of arrays are int64. For each call, standard output gets what the function returned, and then all arrays, in the order
   in which they came. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef _WIN32
#include <fcntl.h>
#include <io.h>
#include <windows.h>

static void *open_library(const char *path) {
    _setmode(_fileno(stdin), _O_BINARY);
    _setmode(_fileno(stdout), _O_BINARY);
    return LoadLibraryA(path);
}

static void *find(void *library, const char *name) {
    return (void *)GetProcAddress(library, name);
}
#else
#include <dlfcn.h>

static void *open_library(const char *path) {
    return dlopen(path, RTLD_NOW);
}

static void *find(void *library, const char *name) {
    return dlsym(library, name);
}
#endif

enum { MOST = 100, ARGUMENTS = 11, LONGEST_NAME = 100 };

typedef int64_t Entry(
    int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t);

static char *arrays[MOST];
static int64_t sizes[MOST], n_arrays;

static void fail(const char *problem) {
    fprintf(stderr, "%s\n", problem);
    exit(2);
}

static void read_bytes(void *bytes, int64_t size) {
    if (fread(bytes, 1, size, stdin) != (size_t)size)
        fail("the input ends too early");
}

static int64_t read_number(void) {
    int64_t number;
    read_bytes(&number, sizeof number);
    return number;
}

static int64_t read_array(int64_t size) {
    if (n_arrays == MOST)
        fail("there are too many arrays");
    char *bytes = malloc(size);
    read_bytes(bytes, size);
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

static void call(void *library, int64_t length) {
    char name[LONGEST_NAME] = {0};
    if (length >= LONGEST_NAME)
        fail("the name of a function is too long");
    read_bytes(name, length);
    Entry *entry = (Entry *)find(library, name);
    if (!entry)
        fail(name);
    int64_t *v = read_values();
    int64_t result = entry(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10]);
    fwrite(&result, sizeof result, 1, stdout);
    for (int64_t i = 0; i < n_arrays; i++) {
        fwrite(arrays[i], 1, sizes[i], stdout);
        free(arrays[i]);
    }
    n_arrays = 0;
    fflush(stdout);
}

int main(int count, char **words) {
    void *library = count == 2 ? open_library(words[1]) : NULL;
    if (!library)
        fail("the library can't be loaded");
    for (int64_t length; fread(&length, sizeof length, 1, stdin) == 1;)
        call(library, length);
    return 0;
}
