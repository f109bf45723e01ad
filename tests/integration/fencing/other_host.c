/* Preloaded: this process takes itself to be on another machine. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

int uname(struct utsname *out)
{
    int (*real)(struct utsname *);
    void *symbol = dlsym(RTLD_NEXT, "uname");

    memcpy(&real, &symbol, sizeof real); /* ISO C has no cast from an object to a function */
    int rc = real(out);
    if (rc == 0)
        snprintf(out->nodename, sizeof out->nodename, "elsewhere");
    return rc;
}
