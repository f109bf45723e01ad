/* URLs of stores: which are of PostgreSQL, and the parts that may be shown. */
#include <string.h>

#include "coreengine/store/store_internal.h"

static const char *const schemes[] = {"postgres://", "postgresql://"};

/* Parameters that tell nothing secret. */
static const char *const shown[] = {
    "schema=", "host=", "hostaddr=", "port=", "dbname=", "user=", "sslmode=", "application_name=", "connect_timeout="};

bool rv_store_is_postgres(const char *url)
{
    for (size_t i = 0; i < RV_COUNT(schemes); i++)
        if (strncmp(url, schemes[i], strlen(schemes[i])) == 0)
            return true;
    return false;
}

static bool is_shown(const char *parameter)
{
    for (size_t i = 0; i < RV_COUNT(shown); i++)
        if (strncmp(parameter, shown[i], strlen(shown[i])) == 0)
            return true;
    return false;
}

/* Of a URL that is malformed, rather too little is shown than part of a password: what stands before the last "@" is
 * the user and the password, wherever it stands. */
void rv_store_show_url(const char *url, rv_buf *out)
{
    const char *mark = "?";

    if (!rv_store_is_postgres(url)) {
        rv_buf_puts(out, url);
        return;
    }
    const char *begin = strstr(url, "://") + 3, *at = strrchr(begin, '@'), *rest = at ? at + 1 : begin;
    rv_buf_add(out, url, (size_t)(begin - url));
    if (at) {
        rv_buf_add(out, begin, strcspn(begin, ":/?@"));
        rv_buf_putc(out, '@');
    }
    size_t len = strcspn(rest, "?");
    rv_buf_add(out, rest, len);
    for (rest += len + (rest[len] == '?'); *rest; rest += len + (rest[len] == '&')) {
        len = strcspn(rest, "&");
        if (!is_shown(rest))
            continue;
        rv_buf_puts(out, mark);
        rv_buf_add(out, rest, len);
        mark = "&";
    }
}
