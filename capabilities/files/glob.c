/* Patterns for paths. No recursion: each kind of star keeps one place to go back to, so the work stays small. */
#include "capabilities/files/files_internal.h"

#include <string.h>

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

bool glob_match(const char *pattern, const char *path)
{
    const char *star = NULL, *star_at = NULL;   /* after the last '*', and where it stopped */
    const char *cross = NULL, *cross_at = NULL; /* the same for the last "**" */
    bool by_part = false;                       /* the last double star was followed by a slash: it takes whole parts */
    const char *p = pattern, *s = strchr(pattern, '/') ? path : last_part(path);

    while (*s) {
        if (p[0] == '*' && p[1] == '*') {
            while (*p == '*')
                p++;
            by_part = *p == '/';
            p += by_part;
            cross = p;
            cross_at = s;
            star = NULL;
        } else if (*p == '*') {
            star = ++p;
            star_at = s;
        } else if (*p == *s || (*p == '?' && *s != '/')) {
            p++;
            s++;
        } else if (star && *star_at != '/') {
            s = ++star_at;
            p = star;
        } else if (cross) {
            if (by_part) {
                const char *slash = strchr(cross_at, '/');
                if (!slash)
                    return false;
                cross_at = slash + 1;
            } else {
                cross_at++;
            }
            s = cross_at;
            p = cross;
            star = NULL;
        } else {
            return false;
        }
    }
    while (*p == '*')
        p++;
    return *p == '\0';
}
