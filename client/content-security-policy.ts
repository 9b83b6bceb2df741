/** Provides the style nonce and the Trusted Types policy that the page's content security policy requires. */

interface TrustedTypes {
  createPolicy(name: string, rules: { createHTML(text: string): string | null }): unknown
}

/** The page's nonce for style elements. */
export const pageNonce = document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce ?? ''

/** Lets the UI library write style text as HTML, but rejects any text that contains `<`. */
export function guardPage(): void {
  // The scroll lock in dialogs creates a style element and reads the nonce from this global.
  Object.assign(globalThis, { __webpack_nonce__: pageNonce })
  const { trustedTypes } = globalThis as { trustedTypes?: TrustedTypes }
  trustedTypes?.createPolicy('default', { createHTML: (text) => (text.includes('<') ? null : text) })
}
