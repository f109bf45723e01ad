/* The grammar of media types, read character by character. */
#include "coreengine/base/net.h"

#include <string.h>

bool rv_is_media_type(rv_str s)
{
    size_t n_slashes = 0;

    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        n_slashes += c == '/';
        if (!rv_is_letter(c) && !rv_is_digit(c) && !(c && strchr("/!#$&^_.+-", c)))
            return false;
    }
    return s.len <= RV_MEDIA_TYPE_MAX && n_slashes == 1 && s.ptr[0] != '/' && s.ptr[s.len - 1] != '/';
}
