/**
 * Replaces the list of SVG attributes in the package `property-information`, because Markdown contains no SVG
 * elements.
 */

export const svg = { property: {}, normal: {} }
