/** What a developer reads in the console of the browser: names of options and events, never a key, a context or a text. */

/** Something is wrong with how the page uses the widget. */
export function warn(text: string): void {
  // biome-ignore lint/suspicious/noConsole: the console is where developers of the page look.
  console.warn(`Parley: ${text}`)
}

/** What `debug` shows. */
export function note(text: string): void {
  // biome-ignore lint/suspicious/noConsole: the option asks for it.
  console.info(`Parley: ${text}`)
}
