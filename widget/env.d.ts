/** What the build makes of imports that are no code. */
declare module '*.css'

/** A style sheet as text. */
declare module '*.css?inline' {
  const text: string
  // biome-ignore lint/style/noDefaultExport: it is how Vite hands it out.
  export default text
}
