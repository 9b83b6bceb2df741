/** Contains the Arabic strings for the "Get started" checklist. */
import type { AreaTranslation } from '../catalogue.ts'
import type { firstRun as english } from '../en/first-run.ts'

export const firstRun: AreaTranslation<typeof english> = {
  title: 'البدء',
  about: 'أربع خطوات من تثبيت جديد إلى محادثة على موقعك.',
  allSet: 'كل شيء جاهز',
  progress: 'اكتملت {done} من {steps} خطوات',
  hide: 'إخفاء القائمة',
  completeSteps: 'الخطوات المكتملة',
  complete: '(مكتملة)',
  connect: 'توصيل نموذج',
  connectModel: 'توصيل النموذج',
  create: 'إنشاء وكيل',
  createAbout: 'ابدأ من قالب: اسم وتعليمات، وأدوات إن أردت.',
  createAgent: 'إنشاء وكيل',
  try: 'تجربته',
  tryAbout: 'أرسل رسالة إلى وكيلك واطّلع على إجابته واستدعاءات الأدوات والرموز.',
  tryAgent: 'تجربة الوكيل',
  tryShort: 'تجربة',
  tryTheAgent: 'تجربة هذا الوكيل',
  embed: 'تضمينه',
  embedAbout: 'انسخ رمز تضمين وكيلك إلى صفحة في موقعك.',
  showEmbedCode: 'عرض رمز التضمين',
  embedShort: 'تضمين',
  embedTheAgent: 'تضمين الوكيل',
  askAdministrator: 'لا يجيب سوى النموذج التجريبي المدمج، وهو يكرر الرسائل فقط. اطلب من المسؤول توصيل نموذج.',
  connectHelp:
    'لا يجيب سوى النموذج التجريبي المدمج، وهو يكرر الرسائل فقط. أضف OpenAI أو Anthropic أو Ollama أو أي خادم يدعم واجهة OpenAI API.',
  mockModel: 'النموذج التجريبي',
  mockNotice: 'تأتي الإجابات من النموذج التجريبي المدمج الذي يكرر الرسائل فقط. {link}',
  askShort: 'اطلب من المسؤول توصيل نموذج.',
}
