/** How commands speak: results on standard output, as text or as JSON, everything else on standard error. */

/** Prints a command's result. */
export function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

/** Prints a text to its last byte, for whoever redirects it into a file. */
export function printExactly(text: string): void {
  process.stdout.write(text)
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

/** A line of somebody else's text, with signs in place of what would steer a terminal. Security: 2.5. */
export function toVisible(line: string): string {
  return line.replace(/\p{Cc}/gu, (control) => {
    const code = control.charCodeAt(0)
    if (control === '\t') return control
    return code < 0x20 ? String.fromCharCode(0x2400 + code) : '\uFFFD'
  })
}

/** How the operator types the command: from a checkout, or where the package is installed. */
export const commandName = import.meta.url.endsWith('.ts') ? 'npm run parley --' : 'npx parley'
