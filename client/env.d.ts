/** What the build makes of imports that are no code. */
declare module '*.css'
