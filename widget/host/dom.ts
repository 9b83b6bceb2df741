/** Reads the document, whatever elements a page contains. */

/** The document without its named elements: `<img name="currentScript">` hides the property `document.currentScript`. */
export const dom = new Proxy({} as Document, {
  get(_target, name) {
    const value: unknown = Reflect.get(Document.prototype, name, document)
    return typeof value === 'function' ? value.bind(document) : value
  },
})
