#include "tests/contract/store/world.h"
Suite *isolation_suite(void)
{
    return suite_create("isolation");
}
