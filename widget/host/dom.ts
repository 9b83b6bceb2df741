/** Reads the document safely, even if the page has elements that hide its properties. */

/**
 * The document without named elements; for example, `<img name="currentScript">` hides
 * `document.currentScript`.
 */
export const dom = new Proxy({} as Document, {
  get(_target, name) {
    const value: unknown = Reflect.get(Document.prototype, name, document)
    return typeof value === 'function' ? value.bind(document) : value
  },
})
