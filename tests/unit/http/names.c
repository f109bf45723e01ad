#include "names.h"

#include <dlfcn.h>
#include <netdb.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;
static bool is_held;
static size_t n_waiting;

typedef int resolver(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **out);

void names_hold(void)
{
    pthread_mutex_lock(&lock);
    is_held = true;
    pthread_mutex_unlock(&lock);
}

void names_release(void)
{
    pthread_mutex_lock(&lock);
    is_held = false;
    pthread_cond_broadcast(&released);
    while (n_waiting > 0)
        pthread_cond_wait(&released, &lock);
    pthread_mutex_unlock(&lock);
}

size_t names_waiting(void)
{
    pthread_mutex_lock(&lock);
    size_t n = n_waiting;
    pthread_mutex_unlock(&lock);
    return n;
}

static void wait_for_release(void)
{
    pthread_mutex_lock(&lock);
    n_waiting++;
    while (is_held)
        pthread_cond_wait(&released, &lock);
    n_waiting--;
    pthread_cond_broadcast(&released);
    pthread_mutex_unlock(&lock);
}

__attribute__((visibility("default"))) int getaddrinfo(const char *name, const char *service,
                                                       const struct addrinfo *hints, struct addrinfo **out)
{
    resolver *original;
    void *symbol = dlsym(RTLD_NEXT, "getaddrinfo");

    memcpy(&original, &symbol, sizeof symbol);
    if (name && strcmp(name, "nowhere.test") == 0)
        return EAI_NONAME;
    if (name && strcmp(name, "slow.test") == 0)
        wait_for_release();
    if (name && (strcmp(name, "slow.test") == 0 || strcmp(name, "here.test") == 0))
        name = "127.0.0.1";
    return original(name, service, hints, out);
}
