/** Contains the Arabic strings for the Files page. */
import type { AreaTranslation } from '../catalogue.ts'
import type { files as english } from '../en/files.ts'

export const files: AreaTranslation<typeof english> = {
  title: 'الملفات',
  about: 'الملفات المخزّنة عبر واجهة الملفات بمفتاحك النشط.',
  searchBy: 'البحث بالاسم أو المعرّف',
  deletedOne: 'تم حذف الملف',
  deletedMany: 'تم حذف الملفات',
  deleteMenu: 'حذف…',
  deleteOne: 'حذف الملف',
  deleteMany: 'حذف الملفات',
  deleteManyLoss: 'ستُحذف الملفات المحددة ({number}) نهائيًا.',
  deleteOneLoss: 'سيُحذف {name} نهائيًا.',
  none: 'لا توجد ملفات بعد',
  noneHelp: 'ارفع الملفات باستخدام POST /v1/files أو أي عميل رسمي من OpenAI.',
  purpose: 'الغرض',
  allPurposes: 'كل الأغراض',
  name: 'الاسم',
  size: 'الحجم',
  created: 'تاريخ الإنشاء',
  expires: 'تنتهي الصلاحية',
  download: 'تنزيل',
}
