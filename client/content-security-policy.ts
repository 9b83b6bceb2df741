/** What the page's content security policy asks of its scripts: a nonce on style elements, and a policy for text that becomes HTML. */

interface TrustedTypes {
  createPolicy(name: string, rules: { createHTML(text: string): string | null }): unknown
}

/** The nonce of this page, for elements that hold styles. */
export const pageNonce = document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce ?? ''

/** The UI library writes the text of its style elements as HTML; whatever holds a tag is no such text. */
export function guardPage(): void {
  // The scroll lock under dialogs writes a style element of its own, and looks for the nonce here.
  Object.assign(globalThis, { __webpack_nonce__: pageNonce })
  const { trustedTypes } = globalThis as { trustedTypes?: TrustedTypes }
  trustedTypes?.createPolicy('default', { createHTML: (text) => (text.includes('<') ? null : text) })
}
