/** How commands speak: results on standard output, as text or as JSON, everything else on standard error. */

/** Prints a command's result. */
export function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

/** Prints a result as one line of JSON with `--json`, else as the text. */
export function printResult(isJson: boolean, value: unknown, text: string): void {
  print(isJson ? JSON.stringify(value) : text)
}

/** Tells the person at the terminal something that is no result. */
export function printNotice(text: string): void {
  process.stderr.write(`${text}\n`)
}

/** Rows under headings, each column as wide as its widest cell. */
export function renderTable(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = headings.map((heading, column) =>
    Math.max(heading.length, ...rows.map((row) => row[column]?.length ?? 0)),
  )
  return [headings, ...rows]
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] as number))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

/** Unix seconds as people and machines both read them; a dash for never. */
export function renderTime(unixSeconds: number | null): string {
  return unixSeconds === null ? '-' : new Date(unixSeconds * 1000).toISOString().replace('.000', '')
}
