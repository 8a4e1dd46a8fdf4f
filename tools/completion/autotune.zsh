#compdef autotune
# Completion of autotune for zsh: a file _autotune in a folder of $fpath, or eval "$(autotune completion zsh)".
_autotune() {
    local line
    local -a lines values shown
    lines=("${(@f)$("$words[1]" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ $lines[1] == :files ]]; then
        _files
        return
    fi
    for line in $lines; do
        values+=("${line%%$'\t'*}")
        shown+=("${line/$'\t'/  -- }")
    done
    if (( $#values == 1 )) && [[ $values[1] == *= ]]; then
        compadd -S '' -d shown -a values
    else
        compadd -d shown -a values
    fi
}
if [[ $funcstack[1] == _autotune ]]; then
    _autotune "$@"
elif (( $+functions[compdef] )); then
    compdef _autotune autotune
fi
