#include "tests/contract/store/world.h"
Suite *turns_suite(void)
{
    return suite_create("turns");
}
