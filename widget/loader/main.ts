/** The script of `/embed/parley.js`. */
export {}
