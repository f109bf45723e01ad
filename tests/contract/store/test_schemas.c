#include "tests/contract/store/world.h"
Suite *schemas_suite(void)
{
    return suite_create("schemas");
}
