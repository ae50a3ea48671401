# shellcheck shell=bash
# What users can write to an object is a hint, never a proof: where it is read, a comment "hint:" on the line, or up to two
# lines above, says what makes that safe. What assigns is no read; hold_patch.cc, which tools/lint leaves out, only writes.

# Of the sources that are named on stdin, a line each: the reads without such a comment. Fails where there are any.
unexplained_hints() {
  xargs -d '\n' awk '
    FNR == 1 { said = -3 }
    /hint: / { said = FNR }
    / ([a-z.>-]*(meta(\.|->)|template_)(labels|annotations)) = / { next }
    /(\.|->)Annotation\(|(meta(\.|->)|template_)(labels|annotations)[^a-z_]/ && FNR - said > 2 {
      print FILENAME ":" FNR ": say in a comment \"hint: …\" what makes it safe to read what users can write"
      found = 1
    }
    END { exit found }'
}
