/** Prints results to standard output as text or JSON, and notices to standard error. */

export function print(text: string): void {
  printExactly(`${text}\n`)
}

/** Prints without adding a line break, so that redirected output matches the stored text exactly. */
export function printExactly(text: string): void {
  process.stdout.write(text)
}

export function printResult(isJson: boolean, value: unknown, text: string): void {
  print(isJson ? JSON.stringify(value) : text)
}

export function printNotice(text: string): void {
  process.stderr.write(`${text}\n`)
}

export function renderTable(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const table = [headings, ...rows]
  const widths = headings.map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0)))
  const renderRow = (row: readonly string[]) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd()
  return table.map(renderRow).join('\n')
}

export function renderTime(unixSeconds: number | null): string {
  return unixSeconds === null ? '-' : new Date(unixSeconds * 1000).toISOString().replace('.000', '')
}

/** Replaces control characters with visible characters, because untrusted text could control the terminal. */
export function toVisible(line: string): string {
  return line.replace(/\p{Cc}/gu, (control) => {
    const code = control.charCodeAt(0)
    if (control === '\t') return control
    return code < 0x20 ? String.fromCharCode(0x2400 + code) : '\uFFFD'
  })
}

/** The command to print in messages; differs between a checkout and an installed package. */
export const commandName = import.meta.url.endsWith('.ts') ? 'npm run parley --' : 'npx parley'
