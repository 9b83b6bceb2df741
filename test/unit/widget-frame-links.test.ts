/** Tests when a link shows its real host. */
import { expect, test } from 'vitest'
import { findHiddenHost } from '../../widget/frame/markdown/find-hidden-host.ts'

test.each([
  ['https://evil.test/login', 'https://bank.test/login', 'evil.test'],
  ['https://evil.test/', 'bank.test', 'evil.test'],
  ['https://evil.test/', 'Sign in at bank.test', 'evil.test'],
  ['https://evil.test/', '(bank.test)', 'evil.test'],
  ['https://evil.test:8443/', 'bank.test', 'evil.test:8443'],
  ['https://bank.test@evil.test/', 'https://bank.test@evil.test/', 'evil.test'],
  ['https://evil.test/', 'bank\u200b.test', 'evil.test'],
  ['https://xn--bnk-qla.test/', 'bank.test', 'xn--bnk-qla.test'],
])('%s with the text "%s" shows %s', (href, text, host) => {
  expect(findHiddenHost(href, text)).toBe(host)
})

test.each([
  ['https://bank.test/login', 'https://bank.test/login'],
  ['https://www.bank.test/', 'bank.test'],
  ['https://bank.test/', 'our offers'],
  ['mailto:a@bank.test', 'a@bank.test'],
  ['https://bank.test/', 'BANK.test'],
])('%s with the text "%s" shows no host', (href, text) => {
  expect(findHiddenHost(href, text)).toBeUndefined()
})
