/** Reads the document safely on pages with elements that hide its properties. */

/** The document without its named elements: `<img name="currentScript">` hides the property `document.currentScript`. */
export const dom = new Proxy({} as Document, {
  get(_target, name) {
    const value: unknown = Reflect.get(Document.prototype, name, document)
    return typeof value === 'function' ? value.bind(document) : value
  },
})
