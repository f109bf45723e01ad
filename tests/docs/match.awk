# awk -f match.awk EXPECTED ACTUAL: exits 0 if they are equal, where "..." in EXPECTED stands for any text and a line
# of nothing else for any number of lines.
function any_lines(line) {
    return line ~ /^ *\.\.\.$/
}
function same(expected, actual,    at, head, rest, i) {
    at = index(expected, "...")
    if (!at)
        return expected == actual
    head = substr(expected, 1, at - 1)
    rest = substr(expected, at + 3)
    if (substr(actual, 1, at - 1) != head)
        return 0
    for (i = at; i <= length(actual) + 1; i++)
        if (same(rest, substr(actual, i)))
            return 1
    return 0
}
# Whether expected lines from e on fit actual lines from a on.
function fits(e, a) {
    if (e > n_expected)
        return a > n_actual
    if (any_lines(expected[e]))
        return fits(e + 1, a) || (a <= n_actual && fits(e, a + 1))
    return a <= n_actual && same(expected[e], actual[a]) && fits(e + 1, a + 1)
}
FILENAME == ARGV[1] { expected[++n_expected] = $0; next }
{ sub(/ +$/, ""); actual[++n_actual] = $0 }
END { exit !fits(1, 1) }
