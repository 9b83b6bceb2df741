/** Names the buttons outside the frame, in the languages of the frame. */

/** The names of the button that opens and closes the chat, `open|close`, as in `widget/frame/strings/`. */
export const launcherNames: Readonly<Record<string, string>> = {
  ar: 'فتح المحادثة|إغلاق المحادثة',
  de: 'Chat öffnen|Chat schließen',
  en: 'Open chat|Close chat',
  es: 'Abrir el chat|Cerrar el chat',
  fr: 'Ouvrir la discussion|Fermer la discussion',
  he: 'פתיחת הצ׳אט|סגירת הצ׳אט',
  it: 'Apri chat|Chiudi chat',
  ja: 'チャットを開く|チャットを閉じる',
  pt: 'Abrir o chat|Fechar o chat',
  zh: '打开聊天|关闭聊天',
}

/** The names of the button that closes the teaser. */
export const dismissNames: Readonly<Record<string, string>> = {
  ar: 'إغلاق الرسالة',
  de: 'Nachricht schließen',
  en: 'Close message',
  es: 'Cerrar el mensaje',
  fr: 'Fermer le message',
  he: 'סגירת ההודעה',
  it: 'Chiudi il messaggio',
  ja: 'メッセージを閉じる',
  pt: 'Fechar a mensagem',
  zh: '关闭消息',
}

/**
 * Returns the entry for the first supported language of the page's option and the browser, or the English
 * one. Some systems still use `iw`, Hebrew's code until 1989.
 */
export function inLanguage(entries: Readonly<Record<string, string>>, language: string | undefined): string {
  const wanted = [language, ...navigator.languages, 'en'].map((tag = '') =>
    tag.slice(0, 2).toLowerCase().replace('iw', 'he'),
  )
  return entries[wanted.find((tag) => tag in entries) as string] as string
}
