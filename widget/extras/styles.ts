/** Adds the second script's styles to the widget. */
import styles from './extras.css?inline'

const styled = new WeakSet<Node>()

/** Adds the styles once, as a constructed style sheet, which every content security policy allows. */
export function addStyles(layout: HTMLElement): void {
  const root = layout.getRootNode() as ShadowRoot
  if (styled.has(root)) return
  styled.add(root)
  const sheet = new CSSStyleSheet()
  sheet.replaceSync(styles)
  root.adoptedStyleSheets = [...root.adoptedStyleSheets, sheet]
}
