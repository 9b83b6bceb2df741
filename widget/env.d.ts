/** Declares style sheet imports, which the build handles. */
declare module '*.css'

/** Imports a style sheet as text. */
declare module '*.css?inline' {
  const text: string
  // biome-ignore lint/style/noDefaultExport: Vite exports the text as the default.
  export default text
}
