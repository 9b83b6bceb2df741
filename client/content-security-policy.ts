/** Meets the page's content security policy: sets the nonce of style elements and a Trusted Types policy. */

interface TrustedTypes {
  createPolicy(name: string, rules: { createHTML(text: string): string | null }): unknown
}

/** The page's nonce for style elements. */
export const pageNonce = document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce ?? ''

/** Allows the UI library to write style text as HTML, and rejects any text that contains a tag. */
export function guardPage(): void {
  // The scroll lock of dialogs creates its own style element and reads the nonce from this global.
  Object.assign(globalThis, { __webpack_nonce__: pageNonce })
  const { trustedTypes } = globalThis as { trustedTypes?: TrustedTypes }
  trustedTypes?.createPolicy('default', { createHTML: (text) => (text.includes('<') ? null : text) })
}
