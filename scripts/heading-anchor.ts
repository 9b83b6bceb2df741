/** Computes the anchors of Markdown headings. */

/** Returns the anchor of a heading in GitHub's format. */
export function renderAnchor(title: string): string {
  return title
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(/\s/g, '-')
}
