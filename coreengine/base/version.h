/* The version of reeve: of the headers that a program was compiled with, and of the library that it runs with. CMake
 * reads it from here. */
#ifndef RV_BASE_VERSION_H
#define RV_BASE_VERSION_H

#define REEVE_VERSION "0.1.0"

/** REEVE_VERSION of the library, major.minor.patch; static. */
const char *rv_version(void);

#endif
