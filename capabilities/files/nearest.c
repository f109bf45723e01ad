/* A file that is not there: the name in its folder that may have been meant. */
#include "capabilities/files/files_internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define MAX_NAME   128  /* bytes of a name that is compared */
#define MAX_LOOKED 1000 /* names of one folder */

static char folded(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* How many bytes have to be added, removed or replaced; both names are shorter than MAX_NAME. */
static size_t changes(const char *a, const char *b)
{
    size_t row[MAX_NAME + 1], n = strlen(b);

    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 1; a[i - 1]; i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t above = row[j], least = corner + (folded(a[i - 1]) != folded(b[j - 1]));
            if (above + 1 < least)
                least = above + 1;
            if (row[j - 1] + 1 < least)
                least = row[j - 1] + 1;
            corner = above;
            row[j] = least;
        }
    }
    return row[n];
}

/* "notes" for "notes.md" is as near as one wrong letter. */
static size_t distance(const char *wanted, const char *name)
{
    size_t n = strlen(wanted);

    return strncasecmp(wanted, name, n) == 0 && name[n] == '.' ? 1 : changes(wanted, name);
}

bool nearest_name(const struct files *f, const struct place *place, char *out, size_t size)
{
    char wanted[MAX_PATH_BYTES];
    int fd = place->root->file ? -1 : open_parent(f, place, wanted, sizeof wanted);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    size_t least = strlen(fd < 0 ? "" : wanted) / 3 + 1;
    const struct dirent *entry;

    if (!dir && fd >= 0)
        close(fd);
    if (!dir)
        return false;
    out[0] = '\0';
    for (int i = 0; i < MAX_LOOKED && strlen(wanted) < MAX_NAME && (entry = readdir(dir)); i++) {
        if (entry->d_name[0] == '.' || strlen(entry->d_name) >= MAX_NAME ||
            !is_text(entry->d_name, strlen(entry->d_name)))
            continue;
        size_t far = distance(wanted, entry->d_name);
        if (far < least || (far == least && (!out[0] || strcmp(entry->d_name, out) < 0))) {
            least = far;
            snprintf(out, size, "%s", entry->d_name);
        }
    }
    closedir(dir);
    return out[0] != '\0';
}
