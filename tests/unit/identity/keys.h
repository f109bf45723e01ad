/* Keys for the tests of tokens, made for nothing else: as the members of JSON Web Keys. */
#ifndef RV_TESTS_IDENTITY_KEYS_H
#define RV_TESTS_IDENTITY_KEYS_H

#define KEY_RSA_N                                                                                                      \
    "hFL1kuyQoecr2omp-0nsaF5pyGvf1Ykq2mPLWw5uzcBD-qRTVagPfUi9ew-AVP0H7hp7lLKqEqyQg2LshgiVThaBEXz2rlYWo1Sk"             \
    "Rj6GPZln4mObncGBN3Rniye2ojdtLeqTFKc0dAm3AJ2TFEGoTraoVpi1YOWIa2HvwUhEUqCZhsDD_414hX2JNGgFJbqK6q6OtBdv"             \
    "VKMv2ZBjxVxjcZCkKIFdYYdIf0l7ZsTHwL32kq2Jwg05duUdOlEFhi48fQnxFMWSAmgIaA_eBytdBPHwY3WucJANSXbJbk5hAnAk"             \
    "UHhEStIRQZ6Icw2L-Iw6dtjTMsZDdGAYPWZNotPnyw"
#define KEY_RSA_E "AQAB"
#define KEY_RSA_D                                                                                                      \
    "FvId1IsCL5kbMSvDFqjEfnq0xET0jR5amIFKn7EahMJM53c8XjOk7_g_p0nSWqqACAl-mZP7yv4ylx393uY5Ic_kNMijLCsQhOUm"             \
    "EWpBNAhYi9jzAMGv6xJb7DUIRgvvelFdjOzLuz1-BvTMLuyNx4yEF3Qmq7VR2TEj9rPV6S_haoGxyncw2w2P0S9_XKNgZsSVeg21"             \
    "mpMmi1IGWrVNUgNg4n3h7U_8F0yuL_QGoh7qNmY2n2x7-D-7e-uz3HN8pilfARyboizxa2DrOuiAL0uUiny8WPUsL7nkkMqU3aqg"             \
    "ghlsu8WDL3dQadYysj5f8nSUZqG1iw7_TighpTsuNQ"
#define KEY_RSA_P                                                                                                      \
    "uCZJxK71EYgqV7NAapw7K7WX2TQRha2_kiKaiW32ZRAXix2p5IS9Y3FyKdf6eoZma9KXPouCI5hAFw3rU7J9orO3PapYhBhuGWWo"             \
    "Knx9NKF_isu6nvqXLR2NfTqJ5YnA8w-rGIpq1HBgyqOW3ocF1IxAwkeLpuDXOiqsx6Q82Ec"
#define KEY_RSA_Q                                                                                                      \
    "t_QZgau8sjjL1fmBbRk4na5HzK0yBABS8xcIjppPKaKo3fs5llKL-8EQvQcWSsqwd-CjpVCr3_WD-QmC1lmORLZpajSnORRHaSDg"             \
    "IrxBZhTQGT_k_ExAxr3be4O4pCX3zUyEQc_IfuvVXlz1v2Atm0BOUXl1G8PUgKc1SYxc-l0"
#define KEY_RSA_DP                                                                                                     \
    "sQ3_N2CQuL6XF6N9eAOm0KvUyD3L6x_XZYZn12Mm2JzURinLQ7Bs98QH5DuI1W2L5Heie7xe8CJe3MvBS8P-EAWDVYMHgFqM4VZg"             \
    "jhkLuSLeInEniduepv4XICS8mToNjqWt9_Z-KKu0JKGNWX-xF1-SlDl-CIF97qtBXOKIrdk"
#define KEY_RSA_DQ                                                                                                     \
    "tYaMJQn0C2tAusackaxx0ihJchD3ajtnn7r7Fr3voIaDXYqsKUsMGENM4Tw9I1EhEyr6Ughpk3gT440fL6bwXZ4kKEoNOqZoUbW_"             \
    "eIeNgc7IDCKhNNeKlJSGIjy52EIfZtg7KzaAA791rsjNOS0P1ESBBKV2iw-Ug-B9FTcOCYE"
#define KEY_RSA_QI                                                                                                     \
    "dyf7P5c2JDJ6momLDA3vxNZdjNym9SYOySxJ3n-FYYbfOsfNejv6-nwszNl6wPQdooByHzYNDTY8bUVANi5d3gOU1W_q5oPIiOmm"             \
    "71WqPpD4b5kJQuC2gX0zWfh8zpCXJ6tDnDu6I04DkWWXOAGc-SdV9pq_8zM5LQ9Bk9ZZ1g0"

#define KEY_RSA_2_N                                                                                                    \
    "syVcXqVGye-Ol7lmBNaeyCGQHJv-jb-LribzHDThJXy8aZBemBmwuVfrI8k0sj2_1-O5J8RNmlyxqnO7O4pvDYub0JAM5geI9Kqr"             \
    "7K-eyvtqQm9r81RZhHkLVphM_awQ4PfpVfuApXBWqRq9g6fb3pjzgugNb8xOyAS-qYz9ALg1jOuBjy8KAHfao3x8phF3QwUrpMAC"             \
    "CcpvuO-MQWrg3yVggGWK2MsVjPuDbkYJM7lCEXlaBL_rcePXAO4lYD4Gau010gPOUD1u-R7ocanNZMJ3AsVoo1N2dDAzHMjcw_Hn"             \
    "94XFj3DaDaIDNEwv6YS7u_ufP7f9zADuuTC9YdHA_w"
#define KEY_RSA_2_E "AQAB"

#define KEY_SMALL_N                                                                                                    \
    "1ustsAGQlhM-b6lMFDDv2MyOynpiWQYJOxBQyRTqgUyNFPIIM4Rx3gXrFKbNRosKJaEzh9BFReFOcOb48RNQB6OiqLhvjwWAmf34"             \
    "ZhL7a-GeGA_1_W3-t2yQbsZ_0Ic77DUNqslY0jspVz_cZeVmPq_5yAiiNgJhEgW2akW1WD0"
#define KEY_SMALL_E "AQAB"

#define KEY_EC_X "J0Q4EfZx6bCbRiA9BPdQNO0yPxjaVPr-8rTezy4yFY0"
#define KEY_EC_Y "upJG7XwSfbpRUIeEUpC_pxO8bGh4kJiDguri4UV9zr0"
#define KEY_EC_D "Z1iAQghdZtax-d2kIIdN7BcCFj1N5CeS8Z6L2O0UiOc"

#endif
