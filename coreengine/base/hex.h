/* Hexadecimal digits. */
#ifndef RV_HEX_H
#define RV_HEX_H

/** The value of a digit, of either case; -1: another character. */
static inline int rv_hex_digit(char c)
{
    char small = (char)(c | 0x20);

    return c >= '0' && c <= '9' ? c - '0' : small >= 'a' && small <= 'f' ? small - 'a' + 10 : -1;
}

#endif
