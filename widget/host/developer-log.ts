/** What a developer reads in the console of the browser: names of options and events, never a key, a context or a text. */

/** A warning for a mistake, `info` for what `debug` asks for. */
export function say(level: 'warn' | 'info', text: string): void {
  // biome-ignore lint/suspicious/noConsole: it is where developers of the page look.
  console[level](`Parley: ${text}`)
}
