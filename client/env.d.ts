/** Declares style sheet imports, which the build handles. */
declare module '*.css'
