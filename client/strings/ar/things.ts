/** Contains the Arabic names of what the console loads and lists. */
import type { AreaTranslation } from '../catalogue.ts'
import type { things as english } from '../en/things.ts'

export const things: AreaTranslation<typeof english> = {
  agent: 'الوكيل',
  agents: 'الوكلاء',
  agentKey: 'مفتاح الوكيل',
  agentKeys: 'مفاتيح الوكلاء',
  artifact: 'العنصر',
  binned: 'الوكلاء في سلة المحذوفات',
  charts: 'الرسوم البيانية',
  console: 'وحدة التحكم',
  conversation: 'المحادثة',
  conversations: 'المحادثات',
  entries: 'الإدخالات',
  example: 'المثال',
  files: 'الملفات',
  keys: 'المفاتيح',
  messages: 'الرسائل',
  models: 'قائمة النماذج',
  page: 'الصفحة',
  pages: 'الصفحات',
  parentKeys: 'المفاتيح الرئيسية',
  policy: 'سياسة النماذج',
  steps: 'الخطوات',
  uploads: 'عمليات الرفع',
  usage: 'الاستخدام',
  users: 'المستخدمون',
  versions: 'الإصدارات',
  providers: 'مزوّدو النماذج',
  testResult: 'نتيجة الاختبار',
  calls: 'الاستدعاءات',
}
